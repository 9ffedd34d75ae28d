"""What training stands on, without a model: options, errors, the steps that workers share."""
