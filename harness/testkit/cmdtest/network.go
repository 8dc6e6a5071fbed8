package cmdtest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/coppice-ldl/coppice/harness/netlab"
)

// OnNetwork is an environment variable. If it is set, Main moves the process onto a network of its own.
const OnNetwork = "COPPICE_TEST_ON_NETWORK"

func enterNetwork() error {
	if os.Getenv(OnNetwork) == "" {
		return nil
	}
	return netlab.Enter()
}

// Alone runs the test again in a process that has a network of its own and the variables of more, and returns what it
// printed. In that process, again is false and the test goes on. If there can be no such network, the test is skipped.
func Alone(t *testing.T, more ...string) (out string, again bool) {
	t.Helper()
	if os.Getenv(OnNetwork) != "" {
		return "", false
	}
	if reason := netlab.Missing(); reason != "" {
		t.Skip(reason)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(append(os.Environ(), OnNetwork+"=1"), more...)
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return string(b), true
}
