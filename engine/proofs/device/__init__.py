"""Proofs that training works on a device: small experiments that pass, fail or are skipped, with their figures."""
