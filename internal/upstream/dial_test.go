package upstream

import (
	"testing"
)

func TestAddressesWhereNoProjectServerCanBe(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:3001":                true,
		"[::1]:3001":                    true,
		"10.1.2.3:80":                   true,
		"192.168.1.1:80":                true,
		"93.184.216.34:443":             true,
		"[fd12:3456::1]:80":             true,
		"[2001:db8::1]:80":              true,
		"[64:ff9b::5db8:d822]:80":       true, // 93.184.216.34
		"[::ffff:10.0.0.1]:80":          true,
		"100.100.100.201:80":            true,
		"169.254.169.254:80":            false,
		"169.254.0.1:80":                false,
		"[::ffff:169.254.169.254]:80":   false,
		"[::ffff:a9fe:a9fe]:80":         false,
		"[::169.254.169.254]:80":        false,
		"[64:ff9b::a9fe:a9fe]:80":       false,
		"[64:ff9b:1::a9fe:a9fe]:80":     false,
		"[::ffff:0:169.254.169.254]:80": false,
		"[2002:a9fe:a9fe::1]:80":        false,
		"[fe80::1%eth0]:80":             false,
		"[febf::1]:80":                  false,
		"[fd00:ec2::254]:80":            false,
		"[fd00:ec2:0:1::23]:80":         false,
		"[fd00:42::42]:80":              false,
		"[fd00:42::43]:80":              true,
		"[fd20:ce::254]:80":             false,
		"100.100.100.200:80":            false,
		"[::ffff:100.100.100.200]:80":   false,
		"[64:ff9b::100.100.100.200]:80": false,
		"168.63.129.16:80":              false,
		"0.0.0.0:80":                    false,
		"0.1.2.3:80":                    false,
		"[::]:80":                       false,
		"[::ffff:0.0.0.0]:80":           false,
		"[64:ff9b::]:80":                false,
		"224.0.0.1:80":                  false,
		"[ff02::1]:80":                  false,
		"[::ffff:239.255.255.250]:80":   false,
		"255.255.255.255:80":            false,
		"not an address":                false,
	} {
		if err := allowAddress("tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}
