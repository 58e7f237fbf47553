package provision

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Secrets are the secrets that a class names, one for each kind of call that the
// driver gets; nil is none.
type Secrets struct {
	// Provisioner is for creating and deleting the volume, ControllerModify for
	// changing its parameters. The others are named in the volume itself.
	Provisioner, ControllerModify       *v1.SecretReference
	ControllerPublish, ControllerExpand *v1.SecretReference
	NodeStage, NodePublish, NodeExpand  *v1.SecretReference
}

// secretUse is what a secret is for, as class parameters call it.
type secretUse struct {
	// word stands in the names of the parameters, with a dash at its end; old is how
	// their older names begin, "" if there are none.
	word, old string
	field     func(*Secrets) **v1.SecretReference
}

func (u secretUse) nameKey() string      { return parameterPrefix + u.word + "secret-name" }
func (u secretUse) namespaceKey() string { return parameterPrefix + u.word + "secret-namespace" }

// defaultSecret is what serves every use that the class names no secret for.
var defaultSecret = secretUse{}

// secretUses are all uses, that of creating and deleting first.
func secretUses() []secretUse {
	return []secretUse{
		{"provisioner-", "csiProvisioner", func(s *Secrets) **v1.SecretReference { return &s.Provisioner }},
		{"controller-publish-", "csiControllerPublish", func(s *Secrets) **v1.SecretReference { return &s.ControllerPublish }},
		{"node-stage-", "csiNodeStage", func(s *Secrets) **v1.SecretReference { return &s.NodeStage }},
		{"node-publish-", "csiNodePublish", func(s *Secrets) **v1.SecretReference { return &s.NodePublish }},
		{"controller-expand-", "", func(s *Secrets) **v1.SecretReference { return &s.ControllerExpand }},
		{"node-expand-", "", func(s *Secrets) **v1.SecretReference { return &s.NodeExpand }},
		{"controller-modify-", "", func(s *Secrets) **v1.SecretReference { return &s.ControllerModify }},
	}
}

// SecretsOf returns the secrets that a class names for a claim's volume, or a
// [Refusal]. It does not look whether they exist.
func SecretsOf(class *storagev1.StorageClass, claim *v1.PersistentVolumeClaim, volume string) (Secrets, error) {
	return secretsOf(secretUses(), class, claim, volume)
}

// DeletionSecretOf returns the secret that a class names for deleting a claim's
// volume, nil for none. Other secrets are ignored: their names may be built from
// annotations that are gone with the claim.
func DeletionSecretOf(class *storagev1.StorageClass, claim *v1.PersistentVolumeClaim,
	volume string) (*v1.SecretReference, error) {
	secrets, err := secretsOf(secretUses()[:1], class, claim, volume)
	return secrets.Provisioner, err
}

func secretsOf(uses []secretUse, class *storagev1.StorageClass, claim *v1.PersistentVolumeClaim,
	volume string) (Secrets, error) {
	var secrets Secrets
	fallback, err := templatesOf(class, defaultSecret)
	if err != nil {
		return Secrets{}, err
	}
	for _, use := range uses {
		templates, err := templatesOf(class, use)
		if err != nil {
			return Secrets{}, err
		}
		if templates == nil {
			templates = fallback
		}
		if *use.field(&secrets), err = templates.resolve(claim, volume); err != nil {
			return Secrets{}, err
		}
	}
	return secrets, nil
}

// secretTemplates are the name and the namespace of a secret as a class writes
// them.
type secretTemplates struct {
	class           string
	name, namespace parameter
}

// parameter is a class parameter.
type parameter struct {
	key, value string
}

// annotationToken begins the tokens that stand for an annotation of the claim.
const annotationToken = "pvc.annotations['"

// templatesOf returns the templates of one use, nil if the class has none.
func templatesOf(class *storagev1.StorageClass, use secretUse) (*secretTemplates, error) {
	name, err := either(class, use.nameKey(), use.old, "SecretName")
	if err != nil {
		return nil, err
	}
	namespace, err := either(class, use.namespaceKey(), use.old, "SecretNamespace")
	switch {
	case err != nil:
		return nil, err
	case name.key == "" && namespace.key == "":
		return nil, nil
	case name.value == "" || namespace.value == "":
		return nil, refuse("storage class %q has only one of the parameters %q and %q of a secret. Both must be specified",
			class.Name, use.nameKey(), use.namespaceKey())
	}
	return &secretTemplates{class: class.Name, name: name, namespace: namespace}, nil
}

// either returns the parameter under its key or its older name; the zero value if
// the class has neither.
func either(class *storagev1.StorageClass, key, old, suffix string) (parameter, error) {
	value, isNew := class.Parameters[key]
	oldValue, isOld := class.Parameters[old+suffix]
	isOld = isOld && old != ""
	switch {
	case isNew && isOld:
		return parameter{}, refuse("secrets specified in parameters with both keys of storage class %q, %q and %q",
			class.Name, key, old+suffix)
	case isNew:
		return parameter{key, value}, nil
	case isOld:
		return parameter{old + suffix, oldValue}, nil
	}
	return parameter{}, nil
}

// resolve returns the secret that the templates name; nil templates name none.
//
// The namespace does not depend on what the claim's author writes, apart from the
// claim's own namespace: else he could point the driver at secrets of others.
func (t *secretTemplates) resolve(claim *v1.PersistentVolumeClaim, volume string) (*v1.SecretReference, error) {
	if t == nil {
		return nil, nil
	}
	namespace, err := t.expand("namespace", t.namespace, map[string]string{"pv.name": volume,
		"pvc.namespace": claim.Namespace}, validation.IsDNS1123Label)
	if err != nil {
		return nil, err
	}
	known := map[string]string{"pv.name": volume, "pvc.namespace": claim.Namespace, "pvc.name": claim.Name}
	for key, value := range claim.Annotations {
		known[annotationToken+key+"']"] = value
	}
	name, err := t.expand("secret", t.name, known, validation.IsDNS1123Subdomain)
	if err != nil {
		return nil, err
	}
	return &v1.SecretReference{Name: name, Namespace: namespace}, nil
}

// expand returns the parameter with its tokens replaced, if that is a valid name.
func (t *secretTemplates) expand(what string, p parameter, known map[string]string,
	flaws func(string) []string) (string, error) {
	text, err := expand(p.value, known)
	if err != nil {
		return "", refuse("error resolving value %q of parameter %q of storage class %q: %s", p.value, p.key, t.class, err)
	}
	if found := flaws(text); len(found) > 0 {
		return "", refuse("%q of parameter %q of storage class %q resolved to %q which is not a valid %s name: %s", p.value,
			p.key, t.class, text, what, strings.Join(found, "; "))
	}
	return text, nil
}
