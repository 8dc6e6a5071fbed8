package commands

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// composed are the services of deploy/compose.yml as they run without Docker.
type composed struct {
	dir      string
	services map[string]struct{ Command []string }
	places   *strings.Replacer // of the folders and addresses of the services
}

// compose gives each service folders below dir and an address of this machine.
func compose(t *testing.T, dir string) (c *composed, addresses map[string]string) {
	t.Helper()
	var file struct {
		Services map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal([]byte(cmdtest.Read(t, "../../deploy/compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	c = &composed{dir: dir, services: file.Services}
	addresses = map[string]string{"worker:7500": testkit.FreeAddress(t)}
	pairs := []string{"0.0.0.0:7500", addresses["worker:7500"], "/certs", filepath.Join(dir, "certs")}
	for name, s := range c.services {
		if len(s.Command) > 0 && s.Command[0] == "coordinator" {
			addresses[name+":7100"] = testkit.FreeAddress(t)
			pairs = append(pairs, name+":7100", addresses[name+":7100"])
		}
	}
	c.places = strings.NewReplacer(pairs...)
	return c, addresses
}

// command returns the command line of a service.
func (c *composed) command(service string) (args []string) {
	for _, arg := range c.services[service].Command {
		args = append(args, strings.ReplaceAll(c.places.Replace(arg), "/data", filepath.Join(c.dir, "data-"+service)))
	}
	return args
}

// TestComposeCommands runs the commands of deploy/compose.yml without Docker, twice for the certificates, and scrapes
// all processes as deploy/prometheus.yml says.
func TestComposeCommands(t *testing.T) {
	dir := t.TempDir()
	c, addresses := compose(t, dir)
	for range 2 {
		cmdtest.Works(t, c.command("certs")...)
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	services := []string{"coordinator-a", "coordinator-b", "coordinator-c", "worker"}
	ends := make(chan cmdtest.Ended, len(services))
	for _, name := range services {
		go func() { ends <- cmdtest.RunContext(ctx, c.command(name)...) }()
	}
	defer func() {
		cancel()
		for range services {
			if e := testkit.Receive(t, "the end of a service", ends); e.Code != cli.ExitOK && e.Code != cli.ExitSignal+2 {
				t.Errorf("exit code %d: %s", e.Code, e.Stderr)
			}
		}
	}()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	cmdtest.Works(t, "train", "--data", data, "--steps", "20", "--server", addresses["coordinator-a:7100"], "--tls-dir",
		filepath.Join(dir, "certs", "admin"))
	var p struct {
		Configs []struct {
			Scheme string
			TLS    map[string]string            `yaml:"tls_config"`
			Static []struct{ Targets []string } `yaml:"static_configs"`
			DNS    []struct{ Names []string }   `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(cmdtest.Read(t, "../../deploy/prometheus.yml")), &p); err != nil {
		t.Fatal(err)
	}
	scraped := 0
	for _, config := range p.Configs {
		var targets []string
		for _, s := range config.Static {
			targets = append(targets, s.Targets...)
		}
		for _, d := range config.DNS {
			for _, name := range d.Names {
				targets = append(targets, name+":7500")
			}
		}
		for _, target := range targets {
			scraped++
			host, _, err := net.SplitHostPort(target)
			if err != nil {
				t.Fatal(err)
			}
			if config.TLS["server_name"] != "" {
				host = config.TLS["server_name"]
			}
			asPrometheus(t, c, config.TLS, host, addresses[target])
		}
	}
	if scraped != len(services) {
		t.Errorf("%d processes were scraped, want %v", scraped, slices.Sorted(slices.Values(services)))
	}
}

// asPrometheus requests the metrics of a process with the files of a tls_config, and verifies the host of the process.
func asPrometheus(t *testing.T, c *composed, files map[string]string, host, address string) {
	t.Helper()
	authorities := x509.NewCertPool()
	b, err := os.ReadFile(c.places.Replace(files["ca_file"]))
	if err != nil || !authorities.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.places.Replace(files["cert_file"]), c.places.Replace(files["key_file"]))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair},
		ServerName: host}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + address + "/metrics")
	if err != nil {
		t.Errorf("%s at %s: %v", host, address, err)
		return
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s at %s: %s", host, address, response.Status)
	}
}
