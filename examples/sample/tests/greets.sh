# Greets the world, and whoever is named.
[ "$(sh greet.sh)" = "Hello, world!" ] || { echo "the world is not greeted"; exit 1; }
[ "$(sh greet.sh Ada)" = "Hello, Ada!" ] || { echo "Ada is not greeted"; exit 1; }
