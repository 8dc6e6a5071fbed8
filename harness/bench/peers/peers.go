// Package peers holds the programs that `coppice bench --peers` runs beside Coppice: the
// same work in Python, each a script with a line of JSON for each question and answer.
package peers

import (
	"embed"
	"os"
)

//go:embed *.py
var scripts embed.FS

// Write writes the scripts to a folder.
func Write(folder string) error { return os.CopyFS(folder, scripts) }
