"""The subcommands of the lab."""
