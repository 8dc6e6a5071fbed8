// Package netlab is a network to test on: hosts with an address each, and between any
// two of them a link in each direction, which delays, loses, doubles and reorders packets
// and has a rate and a queue, as Settings say. What happens to a packet follows from the
// seed, the link and the packet's number on it. Cuts come and go while the network runs.
//
// A host is a network namespace of Linux with loopback and one TUN device. This process
// holds the other ends of all devices: it reads the packets that hosts send, decides by the
// model (Link, a function of times and sizes), and writes each to the device of the host
// that it is for when it is due. The system's own emulation of networks is not needed.
//
// Enter puts the whole process into a namespace of its own, so that it is a host itself:
// its connections, its listeners and all that it starts. Nothing of the machine's own
// network is used or changed.
//
// It takes Linux, /dev/net/tun and the right to make network namespaces; Missing says what
// is not there.
package netlab
