package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
)

// The limit of one process is set, and set back; nobody else's is.
func TestLimitDescriptors(t *testing.T) {
	n, err := proc.Launch("sleep", nil, "sleeper", filepath.Join(t.TempDir(), "log"), "600")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { n.Kill() })
	limit := func(pid string) string {
		b, err := os.ReadFile("/proc/" + pid + "/limits")
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(b), "Max open files")
		return strings.Fields(line)[0]
	}
	pid := fmt.Sprint(n.Pid())
	first, own := limit(pid), limit("self")
	before, err := limitDescriptors(n, 7)
	if err != nil || fmt.Sprint(before) != first || limit(pid) != "7" || limit("self") != own {
		t.Errorf("%v: before %d, %s; now %s, here %s", err, before, first, limit(pid), limit("self"))
	}
	if _, err := limitDescriptors(n, before); err != nil || limit(pid) != first {
		t.Errorf("%v: %s, it was %s", err, limit(pid), first)
	}
}
