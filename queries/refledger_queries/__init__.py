"""The read side of Refledger: questions in SQL over one log or many."""
