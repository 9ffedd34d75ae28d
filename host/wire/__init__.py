"""What is on the wire: headers, frames, addresses, links, and faults on them."""
