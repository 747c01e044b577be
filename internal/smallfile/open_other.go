//go:build !unix

package smallfile

const nonblock = 0
