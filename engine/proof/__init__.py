"""Proofs that training works on a device: small experiments, each passed, failed or skipped, with its figures."""
