package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// platform is a system for which there is a wheel.
type platform struct {
	system, arch string   // as Go names them; both are empty for the wheel without a binary
	tags         []string // of the wheel
}

// platforms lists all wheels.
var platforms = []platform{
	{"linux", "amd64", []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"}},
	{"linux", "arm64", []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"}},
	{"darwin", "amd64", []string{"macosx_12_0_x86_64"}},
	{"darwin", "arm64", []string{"macosx_12_0_arm64"}},
	{"", "", []string{"any"}},
}

// name returns the word of --only that selects the platform.
func (p platform) name() string {
	if p.system == "" {
		return "any"
	}
	return p.system + "/" + p.arch
}

// choose returns the platforms that --only names.
func choose(only string) (chosen []platform, err error) {
	if only == "" {
		return platforms, nil
	}
	for word := range strings.SplitSeq(only, ",") {
		name := word
		if name == "host" {
			name = runtime.GOOS + "/" + runtime.GOARCH
		}
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.name() == name })
		if i < 0 {
			var names []string
			for _, p := range platforms {
				names = append(names, p.name())
			}
			return nil, fmt.Errorf("--only: there is no wheel for %q; want host, %s", word, strings.Join(names, ", "))
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}
