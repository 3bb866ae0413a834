"""Forged certificates, designs and design files, and the judge who compares what they prove with what is true."""
