"""SwitchGNN in Scapy: the layers of its packets, and a worker that is short enough for a lesson."""
