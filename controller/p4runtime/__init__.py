"""One switch over P4Runtime: connection, messages, and the state it holds."""
