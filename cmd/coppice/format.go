package main

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// formatFlag is for commands that write a table to --out.
type formatFlag struct {
	Format string `enum:",csv,csv.gz,npz" default:"" placeholder:"F" help:"Format of --out: csv, csv.gz or npz (default: from the end of the file's name; csv for stdout and devices)."`
}

// of returns the format of a file to write; errors are usage errors.
func (f *formatFlag) of(path string) (dataset.Format, error) {
	ending, ok := dataset.FormatOf(path)
	given := dataset.Format(f.Format)
	switch {
	case ok && given != "" && given != ending:
		return "", usagef("--format %s: %s ends in .%s", given, path, ending)
	case ok:
		return ending, nil
	case given != "":
		return given, nil
	case path == stdoutName || isDevice(path):
		return dataset.CSV, nil
	}
	return "", usagef("%s: the format of the file to write is unknown; give --format, or a name that ends in .csv, .csv.gz or .npz", path)
}
