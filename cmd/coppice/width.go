package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf returns the width of a terminal, 0 where it is not known.
func columnsOf(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// linesOf returns the height of a terminal, 0 where it is not known.
func linesOf(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// fit cuts a line to less than so many columns, so that it does not wrap; 0 leaves it.
func fit(line string, columns int) string {
	runes := []rune(line)
	if columns <= 1 || len(runes) < columns {
		return line
	}
	return string(runes[:columns-2]) + "…"
}
