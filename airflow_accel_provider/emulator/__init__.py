"""The island: a Google on loopback that runs what is submitted to it. It imports nothing of the rest."""
