"""Native back end: programs are rendered as C++, compiled and loaded."""
