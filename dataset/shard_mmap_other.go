//go:build !linux && !darwin

package dataset

import "os"

// mapFile reads a file into memory.
func mapFile(path string, _ int64) ([]byte, func() error, error) {
	b, err := os.ReadFile(path)
	return b, func() error { return nil }, err
}
