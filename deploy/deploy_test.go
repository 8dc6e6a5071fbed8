// Package deploy checks the files of this folder against each other.
package deploy

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type service struct {
	Image   string   `yaml:"image"`
	Command []string `yaml:"command"`
	Volumes []string `yaml:"volumes"`
	// Environment is a map here; compose takes lists as well.
	Environment map[string]string `yaml:"environment"`

	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`

	Build struct {
		Context    string `yaml:"context"`
		Dockerfile string `yaml:"dockerfile"`
	} `yaml:"build"`
}

type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type scrape struct {
	Global struct {
		Interval string `yaml:"scrape_interval"`
	} `yaml:"global"`
	RuleFiles []string `yaml:"rule_files"`
	Configs   []struct {
		Job    string            `yaml:"job_name"`
		Scheme string            `yaml:"scheme"`
		TLS    map[string]string `yaml:"tls_config"`
		Static []struct {
			Targets []string `yaml:"targets"`
		} `yaml:"static_configs"`
		DNS []struct {
			Names []string `yaml:"names"`
			Port  int      `yaml:"port"`
		} `yaml:"dns_sd_configs"`
	} `yaml:"scrape_configs"`
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// flagValue returns what follows a flag in a service's command.
func (s service) flagValue(flag string) string {
	if i := slices.Index(s.Command, flag); i >= 0 && i+1 < len(s.Command) {
		return s.Command[i+1]
	}
	return ""
}

// mounts reports whether a service has a folder or file of this one, read-only, at a path.
func (s service) mounts(source, at string) bool {
	return slices.Contains(s.Volumes, source+":"+at+":ro")
}

func TestCompose(t *testing.T) {
	var c compose
	load(t, "compose.yml", &c)
	peers := ""
	coordinators := 0
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; !ok && !strings.HasPrefix(source, "./") {
				t.Errorf("%s mounts %s, which is not declared", name, source)
			}
			if strings.HasPrefix(source, "./") {
				exists(t, source)
			}
		}
		if s.Image == "coppice" {
			exists(t, s.Build.Context+"/"+s.Build.Dockerfile)
		}
		if len(s.Command) == 0 || s.Command[0] != "coordinator" {
			continue
		}
		coordinators++
		p := s.flagValue("--peers")
		if peers == "" {
			peers = p
		}
		if p != peers || !strings.Contains(p, s.flagValue("--id")+"="+name+":") {
			t.Errorf("%s: --id %s --peers %s", name, s.flagValue("--id"), p)
		}
	}
	if want := len(strings.Split(peers, ",")); coordinators != 3 || want != 3 {
		t.Errorf("%d coordinators, %d peers", coordinators, want)
	}
	joins(t, c, peers)
}

// TestComposeIsSecured: every service of Coppice uses a certificate that the service certs issues before, and no other
// service has the key of the authority.
func TestComposeIsSecured(t *testing.T) {
	var c compose
	var p scrape
	load(t, "compose.yml", &c)
	load(t, "prometheus.yml", &p)
	issuer := c.Services["certs"]
	hosts := make(map[string]string) // by the folder of the certificate
	for _, flag := range []string{"--coordinators", "--pools", "--users"} {
		for _, value := range strings.Split(issuer.flagValue(flag), ",") {
			name, host, _ := strings.Cut(value, "=")
			hosts["/certs/"+name] = cmp.Or(host, name)
		}
	}
	for name, s := range c.Services {
		authority := slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasPrefix(v, "authority:") })
		if authority != (name == "certs") || slices.Contains(s.Command, "--insecure") {
			t.Errorf("%s: %v, with the volumes %v", name, s.Command, s.Volumes)
		}
		if name != "certs" && (s.Image == "coppice" || name == "prometheus") {
			if !s.mounts("certs", "/certs") || s.DependsOn["certs"].Condition != "service_completed_successfully" {
				t.Errorf("%s starts after %v, with the volumes %v", name, s.DependsOn, s.Volumes)
			}
		}
		if _, ok := hosts[s.flagValue("--tls-dir")]; name != "certs" && s.Image == "coppice" && !ok {
			t.Errorf("%s: no certificate in %q is issued: %v", name, s.flagValue("--tls-dir"), hosts)
		}
	}
	for _, config := range p.Configs {
		dir := path.Dir(config.TLS["cert_file"])
		if want := map[string]string{"ca_file": dir + "/ca.crt", "cert_file": dir + "/tls.crt", "key_file": dir +
			"/tls.key"}; config.Scheme != "https" || hosts[dir] != "read" || !contains(config.TLS, want) {
			t.Errorf("%s is scraped by %s with %v", config.Job, config.Scheme, config.TLS)
		}
		for _, s := range config.Static {
			for _, target := range s.Targets {
				host, _, _ := strings.Cut(target, ":")
				if dir := c.Services[host].flagValue("--tls-dir"); hosts[dir] != host {
					t.Errorf("the certificate of %s is for %q", target, hosts[dir])
				}
			}
		}
		for _, d := range config.DNS {
			for _, name := range d.Names {
				if dir := c.Services[name].flagValue("--tls-dir"); hosts[dir] != config.TLS["server_name"] {
					t.Errorf("the certificate of %s is for %q, but Prometheus expects %q", name, hosts[dir], config.TLS["server_name"])
				}
			}
		}
	}
}

// contains reports whether a map has all entries of another.
func contains(m, of map[string]string) bool {
	for k, v := range of {
		if m[k] != v {
			return false
		}
	}
	return true
}

// joins checks that the workers join coordinators that exist.
func joins(t *testing.T, c compose, peers string) {
	for _, addr := range strings.Split(c.Services["worker"].flagValue("--join"), ",") {
		if !strings.Contains(peers, "="+addr) {
			t.Errorf("a worker joins %q, which is no peer", addr)
		}
	}
}

func exists(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}

// Prometheus scrapes every coordinator and the workers, where they listen.
func TestPrometheus(t *testing.T) {
	var c compose
	var p scrape
	load(t, "compose.yml", &c)
	load(t, "prometheus.yml", &p)
	peers := c.Services["coordinator-a"].flagValue("--peers")
	scraped := 0
	for _, config := range p.Configs {
		for _, s := range config.Static {
			for _, target := range s.Targets {
				if scraped++; !strings.Contains(peers, "="+target) {
					t.Errorf("%s is scraped and is no peer", target)
				}
			}
		}
		for _, d := range config.DNS {
			for _, name := range d.Names {
				listen := c.Services[name].flagValue("--listen")
				if _, port, err := net.SplitHostPort(listen); err != nil || port != fmt.Sprint(d.Port) {
					t.Errorf("%s listens at %q and is scraped at %d", name, listen, d.Port)
				}
				scraped++
			}
		}
	}
	if scraped != 4 {
		t.Errorf("%d targets are scraped", scraped)
	}
	for _, f := range p.RuleFiles {
		exists(t, f)
		if !c.Services["prometheus"].mounts("./"+path.Dir(f), "/etc/prometheus/"+path.Dir(f)) {
			t.Errorf("prometheus.yml reads %s, which compose.yml does not mount beside it", f)
		}
	}
	if len(p.RuleFiles) != 1 {
		t.Errorf("rule files: %v", p.RuleFiles)
	}
}
