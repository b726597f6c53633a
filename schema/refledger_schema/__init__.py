"""The vocabulary of Refledger: events, refs, scopes, digests and tables. It imports no other floor."""
