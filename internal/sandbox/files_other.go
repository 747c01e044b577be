//go:build !unix

package sandbox

import "os"

const nonblock = 0

// syncDir does nothing: directories cannot be synced here.
func syncDir(*os.Root) error { return nil }
