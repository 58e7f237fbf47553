package model

import "slices"

// deny has an admission webhook deny a write, undo has it take back a change.
func deny(c *Config) { c.Denials++ }

func undo(c *Config) { c.Undos++ }

// webhookWorlds returns the worlds, in which an admission webhook denies a write or takes back its change; only those
// with the names, all for none.
func webhookWorlds(worlds []Config, names ...string) []Config {
	var all []Config
	for _, c := range worlds {
		if len(names) == 0 || slices.Contains(names, c.Name) {
			all = append(all, c.with("a denied write", deny), c.with("an undone write", undo))
		}
	}
	return all
}

// scenes are the worlds for mutants that start anew.
func scenes() []Config {
	return slices.Concat(bindingWorlds(), releaseWorlds(), reclaimWorlds(), finalizerWorlds(), protectionWorlds(), provisioningWorlds(), inTreeWorlds())
}

// smallWebhookWorlds are those that take seconds: each kind of write is in one of them.
func smallWebhookWorlds() []Config {
	return webhookWorlds(scenes(),
		"bind a static volume", "binding after write 1", "lost claim, volume is back", "release a dynamic volume", "claim elsewhere, dynamic",
		"released, Delete", "released, deleted, marked pending", "released, Retain, with the finalizer", "bound, Delete, without finalizer",
		"volume and claim without protection", "deleted claim, no pod", "deleted available volume", "provision, selected node is gone",
		"in-tree, released", "in-tree, recycle", "in-tree, bound, no finalizer",
	)
}
