// Package migration translates between in-tree volume plugins and the CSI drivers
// that replaced them (CSI migration, KEP-625). It wraps the translation library of
// Kubernetes, csi-translation-lib.
//
// [Library] knows which driver replaced which plugin. [Translator] translates storage
// classes and PersistentVolumes for one driver.
//
// The package reads no API object by itself and decides nothing.
package migration
