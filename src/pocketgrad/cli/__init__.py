"""The command line: a module per command, with NAME, HELP, EXAMPLE, add_arguments and run."""

# In the order `pocketgrad --help` shows them: first what a newcomer needs.
COMMANDS = ("train", "profile", "report", "models", "bench", "devices", "doctor", "record-tree")
