//go:build !amd64 || purego

package linalg

func addTile(c []float64, stride int, a, b []float64) { addTileGo(c, stride, a, b) }
