package snapshot

const nonblock = 0
