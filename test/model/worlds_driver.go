package model

import (
	v1 "k8s.io/api/core/v1"
)

// lied returns the worlds in which an answer of the driver is not what it did.
func lied() []Config {
	var all []Config
	for _, c := range []Config{
		dynamic(v1.PersistentVolumeReclaimDelete), dynamic(v1.PersistentVolumeReclaimRetain),
		static(v1.PersistentVolumeReclaimDelete), recreated(),
	} {
		all = append(all, c.with("a wrong answer", wrongAnswer))
	}
	return all
}

func wrongAnswer(c *Config) { c.WrongAnswers++ }
