package main

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator"
)

// withPort adds the default port to a host that has none. What is no host stays as it is:
// whoever reads the address refuses it. A number alone is a port, not a host.
func withPort(address string) string {
	var missing *net.AddrError
	_, _, err := net.SplitHostPort(address)
	if !errors.As(err, &missing) || missing.Err != "missing port in address" || address == "" || strings.Trim(address, "0123456789") == "" || strings.Contains(address, "/") {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(coordinator.DefaultPort))
}

func withPorts(addresses []string) []string {
	var all []string
	for _, a := range addresses {
		all = append(all, withPort(strings.TrimSpace(a)))
	}
	return all
}
