"""Lets ``python -m`` run the switch."""

from switchgnn.softswitch.daemon.serving import app

app()
