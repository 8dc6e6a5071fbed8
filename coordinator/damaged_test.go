package coordinator_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// A coordinator starts whatever is wrong with its list of members, in one copy or both: the
// log has it, and it is written anew. What was damaged stays for people.
func TestDamagedListOfMembers(t *testing.T) {
	for _, size := range []int{1, 3} {
		ctx := deadline(t)
		c := start(t, size, 0)
		c.put(ctx, "art")
		for _, names := range [][]string{{"MEMBERS"}, {"MEMBERS.copy"}, {"MEMBERS", "MEMBERS.copy"}} {
			c.stop("a")
			good := make(map[string][]byte)
			for _, name := range names {
				path := filepath.Join(c.dir, "a", name)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				good[path] = bytes.Clone(b)
				b[len(b)/2] ^= 4
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c.startCoordinator("a")
			testkit.Until(t, "the coordinator to be ready", func() bool { status, _ := c.get("a", "/readyz"); return status == 200 })
			for path, want := range good {
				testkit.Until(t, "the file to be written anew", func() bool {
					b, err := os.ReadFile(path)
					return err == nil && bytes.Equal(b, want)
				})
				if _, err := os.Stat(path + ".corrupt"); err != nil {
					t.Error(err)
				}
			}
		}
		if _, err := c.client.Dataset(ctx, "art"); err != nil {
			t.Error(err)
		}
		c.stopAll()
	}
}
