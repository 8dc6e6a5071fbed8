//go:build !amd64 || purego

// With this file, which is empty, the compiler permits declarations of assembly in builds without it.
