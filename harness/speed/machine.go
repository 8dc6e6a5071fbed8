package speed

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/version"
)

// Machine is what figures depend on.
type Machine struct {
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`                  // that this process may use
	Memory    int64    `json:"memory_bytes,omitempty"` // 0: not known
	System    string   `json:"system"`                 // "linux/amd64"
	Features  []string `json:"features"`               // of the processor, if they matter here
	// Kernels is what Coppice's kernels run as here: "AVX2" or "portable Go".
	Kernels string `json:"kernels"`
}

// ThisMachine describes the machine that this process runs on.
func ThisMachine() Machine {
	m := Machine{
		Processor: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Features: features(), Kernels: "portable Go",
	}
	if num.Accelerated {
		m.Kernels = "AVX2"
	}
	if name := systemValue("/proc/cpuinfo", "model name"); name != "" { // Linux only, as below
		m.Processor = name
	}
	if kib, ok := strings.CutSuffix(systemValue("/proc/meminfo", "MemTotal"), " kB"); ok {
		n, _ := strconv.ParseInt(kib, 10, 64)
		m.Memory = n << 10
	}
	return m
}

// features lists what of the processor matters here.
func features() (all []string) {
	for _, f := range []struct {
		name string
		has  bool
	}{{"AVX2", cpu.X86.HasAVX2}, {"FMA", cpu.X86.HasFMA}, {"AVX-512", cpu.X86.HasAVX512F}} {
		if f.has {
			all = append(all, f.name)
		}
	}
	return all
}

// Versions are those of what is measured, by name.
func Versions() map[string]string {
	return map[string]string{"Coppice": version.String, "Go": strings.TrimPrefix(runtime.Version(), "go")}
}

func systemValue(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return valueOf(f, key)
}

// valueOf returns the value of the first line "key : value"; empty where there is none.
func valueOf(r io.Reader, key string) string {
	for s := bufio.NewScanner(r); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
