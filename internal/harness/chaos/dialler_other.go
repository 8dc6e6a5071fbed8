//go:build !linux

package chaos

import "net"

// noDiallers says why this machine does not tell who dialled; empty: it does.
func noDiallers() string { return "only Linux tells which process dialled" }

func dialler(net.Conn) string { return "" }
