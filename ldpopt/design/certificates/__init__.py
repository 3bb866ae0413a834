"""The trusted kernel: certificates, which prove bounds by arithmetic rounded outward. It imports no solver."""
