// Package peers holds the programs that `coppice bench --peers` runs beside Coppice: the
// same work in Python, each a script with a line of JSON for each question and answer.
package peers

import (
	"embed"
	"os"
	"path/filepath"
)

//go:embed *.py
var scripts embed.FS

// Write writes the scripts to a folder.
func Write(folder string) error {
	files, err := scripts.ReadDir(".")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := scripts.ReadFile(f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name()), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
