//go:build !linux && !darwin

package dataset

import "os"

func mapFile(path string) ([]byte, func() error, error) {
	b, err := os.ReadFile(path)
	return b, func() error { return nil }, err
}
