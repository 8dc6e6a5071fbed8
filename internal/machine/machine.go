// Package machine says what people want to know of the machine that a process runs on.
package machine

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// MaxName bounds a machine's name, in bytes.
const MaxName = 253

// Name returns the machine's name, cut to MaxName; empty where it has none.
func Name() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name[:min(len(name), MaxName)]
}

// Load returns the average number of processes that wanted a processor in the last
// minute; 0 where the system does not tell.
func Load() float64 {
	b, err := os.ReadFile("/proc/loadavg") // Linux only
	if err != nil {
		return 0
	}
	return parseLoad(string(b))
}

func parseLoad(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || !(load >= 0) || math.IsInf(load, 0) {
		return 0
	}
	return load
}
