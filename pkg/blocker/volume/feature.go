package volume

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Feature says whether a provisioner serves the finalizer of KEP-2644.
type Feature int

const (
	// FeatureUnknown: neither image nor arguments tell.
	FeatureUnknown Feature = iota
	// FeatureOn: the provisioner serves the finalizer.
	FeatureOn
	// FeatureOff: the provisioner is older than the finalizer, or its gate is off.
	FeatureOff
	// FeatureOffMaybe: the only provisioner that was seen does not serve the finalizer, and
	// nothing tells whether it serves the driver.
	FeatureOffMaybe
)

// String returns the name of the value.
func (f Feature) String() string { return enum.Name(f, "unknown", "on", "off", "offMaybe") }

// Program is a container that runs a provisioner.
type Program struct {
	Image string
	Args  []string // command and arguments
}

// gateName is the feature gate of KEP-2644.
const gateName = "HonorPVReclaimPolicy"

// IsUpstream reports whether the image is that of the sidecar external-provisioner.
func (p Program) IsUpstream() bool { return p.imageName() == "csi-provisioner" }

// IsOurs reports whether the image or the command is that of the provisioner of Exeunt.
func (p Program) IsOurs() bool {
	if p.imageName() == "provisioner" {
		return true
	}
	return len(p.Args) > 0 && p.Args[0][strings.LastIndex(p.Args[0], "/")+1:] == "provisioner"
}

// imageName returns the last path element of the image, without tag and digest.
func (p Program) imageName() string {
	name, _, _ := strings.Cut(p.Image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

var versionInTag = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// Version returns major and minor version by the tag of the image, and false if the image
// has no such tag.
func (p Program) Version() (major, minor int, known bool) {
	image, _, _ := strings.Cut(p.Image, "@")
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	found := versionInTag.FindStringSubmatch(tag)
	if !tagged || found == nil {
		return 0, 0, false
	}
	major, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(found[2])
	return major, minor, err == nil
}

// Gate returns the value of the feature gate in the arguments, and false if they do not set it.
func (p Program) Gate() (on, set bool) {
	for i, arg := range p.Args {
		value, isFlag := strings.CutPrefix(strings.TrimLeft(arg, "-"), "feature-gates")
		switch {
		case !isFlag || !strings.HasPrefix(arg, "-"):
			continue
		case value == "" && i+1 < len(p.Args):
			value = p.Args[i+1]
		default:
			value = strings.TrimPrefix(value, "=")
		}
		for pair := range strings.SplitSeq(value, ",") {
			if name, text, _ := strings.Cut(pair, "="); strings.TrimSpace(name) == gateName {
				if gate, err := strconv.ParseBool(strings.TrimSpace(text)); err == nil { // as component-base reads gates
					on, set = gate, true
				}
			}
		}
	}
	return on, set
}

// FeatureOf returns whether the provisioner serves the finalizer.
func FeatureOf(p Program) Feature {
	byVersion := p.featureByVersion()
	switch on, set := p.Gate(); {
	case byVersion == neverHad, set && !on:
		return FeatureOff
	case set:
		return FeatureOn
	case byVersion == offByDefault:
		return FeatureOff
	case byVersion == onByDefault:
		return FeatureOn
	}
	return FeatureUnknown
}

// defaultFeature is what a version of a provisioner does without arguments.
type defaultFeature int

const (
	// unknownDefault: image and tag do not tell.
	unknownDefault defaultFeature = iota
	// neverHad: the version is older than the finalizer.
	neverHad
	// offByDefault: the gate has to be turned on.
	offByDefault
	// onByDefault: the gate has to be turned off.
	onByDefault
)

// String returns the name of the value.
func (d defaultFeature) String() string {
	return enum.Name(d, "unknown", "neverHad", "offByDefault", "onByDefault")
}

// featureByVersion returns the default by image and version: external-provisioner has the
// finalizer since v3.1, behind a gate that is on by default since v5.0.
func (p Program) featureByVersion() defaultFeature {
	major, minor, known := p.Version()
	switch {
	case p.IsOurs():
		return onByDefault
	case !p.IsUpstream() || !known:
		return unknownDefault
	case major < 3 || major == 3 && minor < 1:
		return neverHad
	case major < 5:
		return offByDefault
	}
	return onByDefault
}

// FeatureOfAll returns FeatureOff only if no program may serve the finalizer.
func FeatureOfAll(programs []Program) Feature {
	best := FeatureUnknown
	for i, program := range programs {
		switch feature := FeatureOf(program); {
		case feature == FeatureOn:
			return FeatureOn
		case i == 0 || feature == FeatureUnknown:
			best = feature
		}
	}
	return best
}
