//go:build !amd64 || purego

// With this file, which is empty, the compiler permits the declarations of assembly in asm.go.
