//go:build !amd64 || purego

package num

func vectors(do func(name string)) { do("no vectors") }
