package datasetcmd

import (
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Images without a size, or of so many channels, are wrong usage, whatever the files are.
func TestImageUsage(t *testing.T) {
	testkit.WithoutRace(t)
	files := map[string]string{"x.csv": "image,class\na.png,1\n"}
	for args, says := range map[string]string{
		"":                           "--shape",
		"--shape 2x4x4":              "want 1 (grey) or 3",
		"--shape 1x4x4 --drop class": "--images cannot be combined with",
	} {
		cmdtest.Refused(t, files, "train --local --data @/x.csv --images @ --labels class "+args, cli.ExitUsage,
			[]string{says})
	}
}
