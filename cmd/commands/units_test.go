package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestUnits: the units of systemd run commands of coppice, and every variable in them and in their files of variables
// is a flag of the command. systemd, if it is installed, finds no mistake and little exposure.
func TestUnits(t *testing.T) {
	const dir = "../../deploy/systemd"
	users := cmdtest.Read(t, filepath.Join(dir, "sysusers.conf"))
	for _, service := range []string{"coordinator", "worker"} {
		path := filepath.Join(dir, "coppice-"+service+".service")
		var variables []string
		keys := make(map[string]string)
		for line := range strings.Lines(cmdtest.Read(t, path)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			keys[key] = value
		}
		if keys["ExecStart"] != "/usr/bin/coppice "+service || keys["Type"] != "notify" || keys["WatchdogSec"] == "" ||
			keys["EnvironmentFile"] != "-/etc/coppice/"+service+".env" || !strings.Contains(users, " "+keys["User"]+" ") {
			t.Errorf("%s: %v", path, keys)
		}
		variables = append(variables, strings.Fields(keys["Environment"])...)
		for line := range strings.Lines(cmdtest.Read(t, filepath.Join(dir, service+".env"))) {
			if assignment := strings.TrimPrefix(strings.TrimSpace(line), "#"); strings.HasPrefix(assignment, "COPPICE_") {
				variables = append(variables, assignment)
			}
		}
		if len(variables) < 4 {
			t.Errorf("%s has only the variables %q", service, variables)
		}
		for _, v := range variables {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
			defer os.Unsetenv(name)
		}
		shown := cmdtest.Works(t, "config", "show", service)
		for _, v := range variables {
			name, _, _ := strings.Cut(v, "=")
			if !strings.Contains(shown, name) {
				t.Errorf("%s is no flag of coppice %s:\n%s", name, service, shown)
			}
			os.Unsetenv(name)
		}
		if strings.Contains(shown, "unknown") {
			t.Errorf("a variable is unknown:\n%s", shown)
		}
		if tool, err := exec.LookPath("systemd-analyze"); err == nil {
			out, err := exec.Command(tool, "security", "--offline=true", "--threshold=15", "--no-pager", path).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
}
