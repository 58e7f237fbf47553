package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// with returns the configuration with a change, and the change in its name.
func (c Config) with(name string, change func(*Config)) Config {
	c.Users = slices.Clone(c.Users)
	c.Programs = slices.Clone(c.Programs)
	c.Name += ", " + name
	change(&c)
	return c
}

// faults are what can go wrong, each once.
var faults = []struct {
	name string
	add  func(*Config)
}{
	{"an interruption", func(c *Config) { c.Interruptions++ }},
	{"a stalled watch", func(c *Config) { c.Stalls++ }},
	{"a crash", func(c *Config) { c.Crashes++ }},
	{"a lost answer", func(c *Config) { c.Losses++ }},
	{"a failed call", func(c *Config) { c.Errors++ }},
	{"a denied write", deny},
}

// worldsOf returns a configuration without a fault and with each one.
func worldsOf(c Config) []Config {
	all := []Config{c}
	for _, fault := range faults {
		all = append(all, c.with(fault.name, fault.add))
	}
	return all
}

// pairsOf returns a configuration with each pair of faults.
func pairsOf(c Config) []Config {
	var all []Config
	for i, first := range faults {
		for _, second := range faults[i:] {
			all = append(all, c.with(first.name, first.add).with(second.name, second.add))
		}
	}
	return all
}

func (c Config) crash() Config {
	c.Crashes = 1
	return c
}

func (c Config) fail() Config {
	c.Errors = 1
	return c
}

// interrupted lets a pass be interrupted once.
func interrupted(c *Config) { c.Interruptions++ }

// stalled lets a watch stall once.
func stalled(c *Config) { c.Stalls++ }

// gateOff switches the gate off in all programs, and the journal stays.
func (c Config) gateOff() Config {
	c.Programs = slices.Clone(c.Programs)
	for i := range c.Programs {
		c.Programs[i].Honor = false
	}
	c.Admission = false
	return c
}

// unadmitted is the world without the admission policy.
func (c Config) unadmitted() Config {
	c.Admission = false
	return c
}

// exempt is the world in which a volume is left as it is.
func (c Config) exempt(volume string) Config {
	c.Exempt = append(c.Exempt, types.UID(server.Key{Resource: "persistentvolumes", Name: volume}.UID(1)))
	return c
}

// givenUp is the world in which nobody has to look after the disks that exist at the start.
func (c Config) givenUp() Config {
	c.GivenUp = true
	return c
}

// served is the world in which no class can be provisioned for every claim.
func (c Config) served() Config {
	c.Classes = nil
	return c
}

// alone is the world with the provisioner alone.
func (c Config) alone() Config {
	c.Programs, c.Partial = []Program{provisioner()}, true
	return c
}

// unresolved is the world in which an entry may need an administrator.
func (c Config) unresolved() Config {
	c.Upstream = true
	return c
}
