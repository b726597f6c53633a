"""The write side of Refledger: the append with its projections and payloads, the engines, retention."""
