// Package reference finds the objects that users name: on a command line as KIND/NAME or
// KIND NAME..., and in files as manifests, lists or lines KIND/NAME. A kind is given as
// kubectl takes it: plural, singular, short name, resource.group or resource.version.group.
package reference
