package model

import (
	v1 "k8s.io/api/core/v1"
)

// concurrent lets the loops of all programs work at the same time.
func concurrent(c Config) Config {
	c = c.with("loops at the same time", func(c *Config) {
		for i := range c.Programs {
			c.Programs[i].Concurrent = true
		}
	})
	return c
}

// concurrentWorlds returns the worlds in which the loops of a program interrupt each other.
func concurrentWorlds() []Config {
	return []Config{
		concurrent(static(v1.PersistentVolumeReclaimDelete)), concurrent(static(v1.PersistentVolumeReclaimRetain)),
		concurrent(dynamic(v1.PersistentVolumeReclaimDelete)), concurrent(dynamic(v1.PersistentVolumeReclaimRetain)),
	}
}
