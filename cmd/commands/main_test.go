package commands

import (
	"os"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(m, func() {
		if path := os.Getenv(peakFile); path != "" {
			os.Exit(withPeak(path))
		}
		Main()
	}, Run)
}
