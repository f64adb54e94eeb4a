"""Speaking to servers: addresses, tokens, certificates, and when to ask again."""
