package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// user is who a proxy says that it asks for.
type user struct {
	role, name   string
	serial, from string // may be empty
}

// parseUser reads the user that a proxy names: an object with the texts role, name, serial and from. The last two
// may be missing. The text of a client may be in it, so nothing else is accepted, and nothing twice.
func parseUser(text string) (u user, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	wrong := func() (user, error) {
		return user{}, errors.New(`want an object of texts, such as {"role":"submit","name":"ana","from":"192.0.2.7:1234"}`)
	}
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return wrong()
	}
	fields := map[string]*string{"role": &u.role, "name": &u.name, "serial": &u.serial, "from": &u.from}
	for d.More() {
		key, _ := d.Token() // an error also ends the next token
		value, err := d.Token()
		text, ok := value.(string)
		if err != nil || !ok {
			return wrong()
		}
		name, _ := key.(string)
		into := fields[name]
		if into == nil {
			return user{}, fmt.Errorf("the key %.80q is unknown or occurs twice: want each of role, name, serial and from at most once", name)
		}
		*into = text
		delete(fields, name)
	}
	if _, err := d.Token(); err != nil || d.InputOffset() != int64(len(strings.TrimRight(text, " \t"))) {
		return wrong()
	}
	if u.role == string(rights.Admin) {
		return user{}, errors.New("a proxy names users with the role read or submit only; an admin connects with a certificate or a token")
	}
	identity := certs.Identity{Cluster: "c", Role: certs.User, Name: u.name, Rights: u.role} // any cluster
	if err := identity.Check(); err != nil {
		return user{}, err
	}
	if u.serial = strings.TrimLeft(strings.ToLower(u.serial), "0"); u.serial != "" && !protocol.CheckSerial(u.serial) {
		return user{}, fmt.Errorf("the serial number %.80q: want at most %d hexadecimal digits", u.serial, protocol.MaxSerial)
	}
	return u, nil
}
