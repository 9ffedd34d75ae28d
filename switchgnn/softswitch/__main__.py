"""Lets ``python -m`` run the switch."""

from switchgnn.softswitch.daemon import app

app()
